"""Who said it: statements in signed envelopes, and what a policy demands of them."""
