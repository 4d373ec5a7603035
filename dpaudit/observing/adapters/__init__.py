"""One adapter for each library that can be observed; :data:`dpaudit.observing.KNOWN` names them."""
