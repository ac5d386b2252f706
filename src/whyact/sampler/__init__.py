"""The exact Gibbs sampler of Sec. 4: one file per conditional, `sweep` puts them in order, `chain` runs them."""
