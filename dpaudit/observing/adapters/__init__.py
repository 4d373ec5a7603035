"""One adapter for each library that can be observed; :data:`dpaudit.observing.KNOWN` names them.

A module binds ``ADAPTER`` and is imported when its library is asked for.
"""
