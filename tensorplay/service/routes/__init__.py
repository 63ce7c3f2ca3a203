"""The routes of the REST API, one router for each tag."""
