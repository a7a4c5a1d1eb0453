//! The reader as a whole, on small texts of each form.
