"""The unique coefficient model (Sec. 2.4): every pattern of features has its own policy."""
