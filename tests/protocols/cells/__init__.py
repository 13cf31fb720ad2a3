"""Tests of cells whose members change."""
