/** All checkers, by what they look at. A service at rest is held against each of them. */
import { branches, credentials, defaultBranch, plaintexts, sandboxes } from "./outside-checkers.ts";
import {
  agreement,
  answers,
  causes,
  counters,
  deliveries,
  instants,
  lastFired,
  promises,
  reasons,
  unrest,
  witnessed,
} from "./row-checkers.ts";
import type { Checker, Seen } from "../seen.ts";

export const CHECKERS = {
  agreement,
  answers,
  branches,
  causes,
  counters,
  credentials,
  defaultBranch,
  deliveries,
  instants,
  lastFired,
  plaintexts,
  promises,
  reasons,
  sandboxes,
  unrest: ({ tables }) => unrest(tables),
  witnessed,
} satisfies Readonly<Record<string, Checker>>;

/** @returns a sentence for everything that is not as it must be, with the checker's name before it. */
export const violations = async (seen: Seen): Promise<readonly string[]> => {
  const found = Object.entries(CHECKERS).map(async ([name, check]) =>
    (await check(seen)).map((fault) => `${name}: ${fault}`),
  );
  return (await Promise.all(found)).flat();
};
