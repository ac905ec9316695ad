//! What the files of `records` promise, tried from outside.
