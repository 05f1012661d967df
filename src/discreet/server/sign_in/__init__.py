"""Signing in with an OpenID Connect provider, beside keys: who is let in, and as which analyst."""
