#!/bin/sh
# Says hello to whoever is named, or to the world.
printf 'Hello, %s!\n' "${1:-world}"
