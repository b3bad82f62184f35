"""Credentials as a client in another language makes them: Python's own hmac."""
import hmac


def read_secret(token_file):
    with open(token_file, encoding="ascii") as file:
        return bytes.fromhex(file.read().strip().removeprefix("job:"))


def credential(secret, caller):
    return f"{caller}:{hmac.new(secret, caller.encode(), 'sha256').hexdigest()}"
