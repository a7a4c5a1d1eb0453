//! The fast GPU engine.
