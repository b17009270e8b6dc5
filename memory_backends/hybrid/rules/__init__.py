"""Rules that find candidate facts in a sentence, without a model. English and Spanish."""
