"""Why the model would act so: reasons as data, then as text."""
