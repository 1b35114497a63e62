/** What the tags of base images stand for, in memory: see postgres/projects/environment-bases.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import {
  type EnvironmentBase,
  EnvironmentBases,
} from "../../../../src/store/ports/projects/environment-bases.ts";
import { Tables, type TableSet } from "../tables.ts";

type Request<Name extends keyof EnvironmentBases["Service"]> = Parameters<
  EnvironmentBases["Service"][Name]
>[0];

const byReference = (one: EnvironmentBase, other: EnvironmentBase): number =>
  one.reference < other.reference ? -1 : 1;

const take = (tables: TableSet, { references, now, until, limit }: Request<"take">) => {
  const dueAt = (reference: string): number =>
    tables.environmentBases.get(reference)?.dueAt ?? Number.NEGATIVE_INFINITY;
  const taken = [...new Set(references)]
    .filter((reference) => dueAt(reference) <= now)
    .toSorted((one, other) => dueAt(one) - dueAt(other) || (one < other ? -1 : 1))
    .slice(0, limit);
  return taken.map((reference) => {
    const known = tables.environmentBases.get(reference);
    const unknown = { reference, digest: null, lookedUpAt: null, failures: 0, problem: null };
    const row = { ...(known ?? unknown), triedAt: now, dueAt: until };
    tables.environmentBases.set(reference, row);
    return { reference, failures: row.failures };
  });
};

const found = (tables: TableSet, { reference, digest, now, dueAt }: Request<"found">): void => {
  const known = tables.environmentBases.get(reference);
  if ((known?.lookedUpAt ?? now) > now) return;
  const answer = { reference, digest, lookedUpAt: now, triedAt: now, failures: 0, problem: null, dueAt };
  tables.environmentBases.set(reference, answer);
};

const missed = (tables: TableSet, { reference, problem, now, dueAt }: Request<"missed">): void => {
  const known = tables.environmentBases.get(reference);
  if (known === undefined || (known.lookedUpAt ?? now) > now) return;
  const row = { ...known, problem, failures: known.failures + 1, triedAt: now, dueAt };
  tables.environmentBases.set(reference, row);
};

export const layer = Layer.effect(
  EnvironmentBases,
  Effect.map(Tables, (tables) => ({
    get: (references) =>
      Effect.sync(() =>
        [...tables.environmentBases.values()]
          .filter(({ reference }) => references.includes(reference))
          .toSorted(byReference),
      ),
    take: (request) => Effect.sync(() => take(tables, request)),
    found: (answer) => Effect.sync(() => found(tables, answer)),
    missed: (miss) => Effect.sync(() => missed(tables, miss)),
    prune: (before) =>
      Effect.sync(() => {
        for (const [reference, { triedAt }] of tables.environmentBases)
          if (triedAt < before) tables.environmentBases.delete(reference);
      }),
  })),
);
