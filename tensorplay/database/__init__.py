"""How winners are kept: records, their CSV text, validators, the results map and the files."""
