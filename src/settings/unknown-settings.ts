/** Variables of the environment that look like settings and are none. */
import { nearest } from "../ground/nearest.ts";
import { SETTINGS } from "./settings.ts";

const PREFIX = "PLATFORM_";

/** Names that were settings once, and what holds without them. */
const REMOVED_SETTINGS: Readonly<Record<string, string>> = {
  PLATFORM_PACKAGE_CACHE_ALLOW_HOSTS:
    "The hosts of PLATFORM_PACKAGE_CACHE_NPM and PLATFORM_PACKAGE_CACHE_PYPI are allowed by being named there.",
};

const withoutPrefix = (name: string): string => name.slice(PREFIX.length);
const NAMES = Object.keys(SETTINGS)
  .filter((name) => name.startsWith(PREFIX))
  .map(withoutPrefix);

/** Other programs have variables with the same prefix, so a name that is not near to a setting's may be theirs. */
const sentenceFor = (name: string): string | null => {
  const instead = REMOVED_SETTINGS[name];
  if (instead !== undefined) return `${name} is no setting any more. ${instead}`;
  if (!name.startsWith(PREFIX) || Object.hasOwn(SETTINGS, name)) return null;
  const suggestion = nearest(withoutPrefix(name), NAMES);
  return suggestion === null
    ? null
    : `${name} is no setting, and has no effect. ${PREFIX}${suggestion} may be meant.`;
};

/** @returns a sentence for each name that is set, but is no setting any more, or is a setting's with a mistake. */
export const unknownSettings = (
  environment: Readonly<Record<string, string | undefined>>,
): readonly string[] =>
  Object.entries(environment).flatMap(([name, value]) =>
    (value ?? "") === "" ? [] : (sentenceFor(name) ?? []),
  );
