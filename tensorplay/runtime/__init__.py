"""When to look up, measure, heal and pin: settings, the decision table, the tuner and the context."""
