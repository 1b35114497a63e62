#!/bin/sh
# Greets the given name, or the world.
printf 'Hello, %s!\n' "${1:-world}"
