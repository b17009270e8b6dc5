"""Design rules that the shipped conversations keep, and what a set of them covers."""
