"""The clustering approach (Sec. 2.4): every cluster of observations has its own policy."""
