"""The paper's arguments about other models (Sec. 2.4), tested."""
