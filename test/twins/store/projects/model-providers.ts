/** Providers of models and what passed to them, in memory: see features/model-providers/sql. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { utcDay } from "../../../../src/domain/conversation/usage.ts";
import {
  ModelProviders,
  NameTaken,
  ProvidersFull,
  type ModelProvider,
} from "../../../../src/features/model-providers/ports/model-providers.ts";
import { ModelUsage, type CountedUsage } from "../../../../src/features/model-providers/ports/model-usage.ts";
import {
  ownerAt,
  type ProviderPlace,
  PROVIDERS_MAX,
} from "../../../../src/features/model-providers/rules/provider.ts";
import { type ModelUser, PROVIDER_OWNERS } from "../../../../src/domain/sandbox/account-provider.ts";
import type { CountedCall } from "../../../../src/domain/sandbox/spend.ts";
import { COUNTED_MODELS_MAX, OTHER_MODELS } from "../../../../src/store/ports/projects/project-usage.ts";
import { Fenced } from "../../../../src/store/ports/journal.ts";
import { Tables, type TableSet } from "../tables.ts";

export interface ModelUsageRow extends CountedUsage {
  readonly sessionId: string;
  readonly projectId: string;
  readonly day: string;
}

const inOrder = (rows: readonly ModelProvider[]): readonly ModelProvider[] =>
  rows.toSorted(
    (one, other) =>
      PROVIDER_OWNERS.indexOf(one.owner) - PROVIDER_OWNERS.indexOf(other.owner) ||
      one.createdAt - other.createdAt ||
      (one.id < other.id ? -1 : 1),
  );

const ofPlace = (
  tables: TableSet,
  { accountId, projectId, userId }: ProviderPlace,
): readonly ModelProvider[] =>
  inOrder(
    [...tables.modelProviders.values()].filter(
      (row) => row.accountId === accountId && row.projectId === projectId && row.userId === userId,
    ),
  );

const usableBy = (
  tables: TableSet,
  { accountId, projectId, personId }: ModelUser,
): readonly ModelProvider[] => {
  const places = [
    { accountId, projectId: null, userId: null },
    { accountId, projectId, userId: null },
    ...(personId === null ? [] : [{ accountId, projectId: null, userId: personId }]),
  ];
  return inOrder(places.flatMap((place) => ofPlace(tables, place)));
};

const rowOf = (tables: TableSet, place: ProviderPlace, id: string): ModelProvider | null =>
  ofPlace(tables, place).find((provider) => provider.id === id) ?? null;

/** The session of a sandbox that has not ended. */
export const sessionIn = (tables: TableSet, sandboxId: string) => {
  const sandbox = tables.sandboxes.get(sandboxId)?.record;
  const session = tables.sessions.get(sandbox?.sessionId ?? "")?.record;
  return sandbox === undefined || sandbox.endedAt !== null ? null : (session ?? null);
};

const providers = Layer.effect(
  ModelProviders,
  Effect.map(Tables, (tables) => ({
    create: ({ now, ...provider }) =>
      Effect.gen(function* () {
        const others = ofPlace(tables, provider);
        if (others.length >= PROVIDERS_MAX) return yield* new ProvidersFull({ limit: PROVIDERS_MAX });
        if (others.some(({ name }) => name === provider.name))
          return yield* new NameTaken({ name: provider.name });
        const made = {
          ...provider,
          owner: ownerAt(provider),
          refusal: null,
          createdAt: now,
          updatedAt: now,
        };
        tables.modelProviders.set(made.id, made);
        return made;
      }),
    list: (place) => Effect.sync(() => ofPlace(tables, place)),
    usable: (user) => Effect.sync(() => usableBy(tables, user)),
    get: (place, id) => Effect.sync(() => rowOf(tables, place, id)),
    change: (place, id, { now, ...change }) =>
      Effect.gen(function* () {
        const row = rowOf(tables, place, id);
        if (row === null) return null;
        if (row.sealed.version !== change.sealed.version - 1) return yield* new Fenced({ id });
        const changed = { ...row, ...change, refusal: null, updatedAt: now };
        tables.modelProviders.set(id, changed);
        return changed;
      }),
    remove: (place, id) =>
      Effect.sync(() => rowOf(tables, place, id) !== null && tables.modelProviders.delete(id)),
    noteRefusal: (id, refusal) =>
      Effect.sync(() => {
        const row = tables.modelProviders.get(id);
        if (row !== undefined) tables.modelProviders.set(id, { ...row, refusal });
      }),
    ofSandbox: (sandboxId, name) =>
      Effect.sync(() => {
        const session = sessionIn(tables, sandboxId);
        if (session === null) return null;
        const { id: sessionId, accountId, projectId, origin, createdBy } = session;
        const found = usableBy(tables, { accountId, projectId, personId: createdBy }).filter(
          (one) => one.name === name,
        );
        return found.length === 0 ? null : { sessionId, projectId, origin, createdBy, providers: found };
      }),
  })),
);

const keyOf = ({ sessionId, day, model }: Pick<ModelUsageRow, "sessionId" | "day" | "model">): string =>
  JSON.stringify([sessionId, day, model]);

/** The rows with the same key, added up. */
const summed = (rows: readonly ModelUsageRow[], key: (row: ModelUsageRow) => string): ModelUsageRow[] => {
  const sums = new Map<string, ModelUsageRow>();
  for (const row of rows) {
    const sum = sums.get(key(row));
    sums.set(key(row), {
      ...row,
      calls: row.calls + (sum?.calls ?? 0),
      untoldCalls: row.untoldCalls + (sum?.untoldCalls ?? 0),
      input: row.input + (sum?.input ?? 0),
      cached: row.cached + (sum?.cached ?? 0),
      output: row.output + (sum?.output ?? 0),
      estimated: row.estimated + (sum?.estimated ?? 0),
      cost: row.cost + (sum?.cost ?? 0),
    });
  }
  return [...sums.values()];
};

/** Adds a call of a session: see src/store/postgres/projects/model-usage.ts. */
export const addModelUsage = (
  tables: TableSet,
  { id: sessionId, projectId }: { readonly id: string; readonly projectId: string },
  { model, tokens, estimated, cost, now }: CountedCall & { readonly now: number },
): void => {
  const day = utcDay(now);
  const known = [...tables.modelUsage.values()].filter(
    (row) => row.sessionId === sessionId && row.day === day,
  );
  const isOwn = known.length < COUNTED_MODELS_MAX || known.some((row) => row.model === model);
  const call = {
    sessionId,
    projectId,
    day,
    model: isOwn ? model : OTHER_MODELS,
    calls: 1,
    untoldCalls: tokens === null ? 1 : 0,
    ...(tokens ?? { input: 0, cached: 0, output: 0 }),
    estimated,
    cost,
  };
  const before = tables.modelUsage.get(keyOf(call));
  const [sum = call] = summed(before === undefined ? [call] : [before, call], keyOf);
  tables.modelUsage.set(keyOf(call), sum);
};

const usage = Layer.effect(
  ModelUsage,
  Effect.map(Tables, (tables) => ({
    days: (projectId, { from, to }) =>
      Effect.sync(() =>
        summed(
          [...tables.modelUsage.values()].filter(
            (row) => row.projectId === projectId && row.day >= from && row.day <= to,
          ),
          ({ day, model }) => JSON.stringify([day, model]),
        )
          .map(({ sessionId: _session, projectId: _project, ...row }) => row)
          .toSorted((one, other) =>
            one.day === other.day ? (one.model < other.model ? -1 : 1) : one.day < other.day ? 1 : -1,
          ),
      ),
    ofSession: (sessionId) =>
      Effect.sync(() =>
        summed(
          [...tables.modelUsage.values()].filter((row) => row.sessionId === sessionId),
          ({ model }) => model,
        )
          .map(({ sessionId: _session, projectId: _project, day: _day, ...row }) => row)
          .toSorted((one, other) => (one.model < other.model ? -1 : 1)),
      ),
  })),
);

export const layer = Layer.merge(providers, usage);
