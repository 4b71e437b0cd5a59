"""The desk: pages on a running trial for those who look after it, in the service's own application.

They are made on the server, need no script and nothing from a network, and show each key what its scopes allow.
"""
