"""The flight recorder: note what a running agent does with its memory, and make a recording of it.

Every door only notes what it saw, unchanged, in the journal of a recording (:mod:`.journal`): the wrapper of a
Python memory (:mod:`.wrapping`), the receiver of OpenTelemetry spans, the proxy of an MCP server.
:mod:`.operations` reads such notes as operations on a memory, and :mod:`.assembling` makes the conversation and the
events of an ordinary recording of them, whenever the file is opened.
"""
