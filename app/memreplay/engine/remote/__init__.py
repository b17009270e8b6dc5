"""Remote agents, which answer over HTTP from a memory of their own: the client, and the backend that uses it."""
