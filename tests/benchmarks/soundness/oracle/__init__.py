"""What plans cost, computed without the accountants: closed forms, enumeration, transforms."""
