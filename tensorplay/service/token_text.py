"""What a token may be: what every client can send, and nobody guesses in passing."""

from tensorplay.errors import SettingError

__all__ = ["LONGEST_TOKEN", "SHORTEST_TOKEN", "checked_token"]

SHORTEST_TOKEN = 8
LONGEST_TOKEN = 1024

_HOW = "make one by: python -c 'import secrets; print(secrets.token_urlsafe(32))'"


def checked_token(text: str) -> str:
    """Return a token without the end of its line, which editors and `echo` put behind a secret in a file.

    Raises
    ------
    SettingError
        For what no header can carry as it is, or is too short. It never repeats the token.
    """
    token = text.removesuffix("\n").removesuffix("\r")
    if not token.strip():
        raise SettingError(f"the token is empty: give one, or none, and one is made up; {_HOW}")
    if not (token.isascii() and token.isprintable()) or token != token.strip():
        raise SettingError(
            "the token has characters that no header carries as they are; allowed: letters, digits, punctuation and "
            f"blanks of ASCII, no blank at either end; {_HOW}"
        )
    if not SHORTEST_TOKEN <= len(token) <= LONGEST_TOKEN:
        raise SettingError(
            f"the token has {len(token)} characters; allowed: {SHORTEST_TOKEN} to {LONGEST_TOKEN}; {_HOW}"
        )
    return token
