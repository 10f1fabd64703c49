"""Makes the modules beside this file importable in all folders of tests."""
