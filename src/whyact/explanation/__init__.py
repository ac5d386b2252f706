"""Why the model would act that way: reasons as data, then as text."""
