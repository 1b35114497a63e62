/** Providers of models and what passed to them, in memory: see features/model-providers/sql. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { utcDay } from "../../../src/domain/conversation/usage.ts";
import {
  ModelProviders,
  NameTaken,
  ProvidersFull,
  type ModelProvider,
} from "../../../src/features/model-providers/ports/model-providers.ts";
import {
  COUNTED_MODELS_MAX,
  ModelUsage,
  type CountedUsage,
} from "../../../src/features/model-providers/ports/model-usage.ts";
import { PROVIDERS_MAX } from "../../../src/features/model-providers/rules/provider.ts";
import { OTHER_MODELS } from "../../../src/store/ports/projects/project-usage.ts";
import { Fenced } from "../../../src/store/ports/journal.ts";
import { Tables, type TableSet } from "./tables.ts";

export interface ModelUsageRow extends CountedUsage {
  readonly sessionId: string;
  readonly projectId: string;
  readonly day: string;
}

const ofAccount = (tables: TableSet, accountId: string): readonly ModelProvider[] =>
  [...tables.modelProviders.values()]
    .filter((provider) => provider.accountId === accountId)
    .toSorted((one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1));

const rowOf = (tables: TableSet, accountId: string, id: string): ModelProvider | null =>
  ofAccount(tables, accountId).find((provider) => provider.id === id) ?? null;

const providers = Layer.effect(
  ModelProviders,
  Effect.map(Tables, (tables) => ({
    create: ({ now, ...provider }) =>
      Effect.gen(function* () {
        const others = ofAccount(tables, provider.accountId);
        if (others.length >= PROVIDERS_MAX) return yield* new ProvidersFull({ limit: PROVIDERS_MAX });
        if (others.some(({ name }) => name === provider.name))
          return yield* new NameTaken({ name: provider.name });
        const made = { ...provider, createdAt: now, updatedAt: now };
        tables.modelProviders.set(made.id, made);
        return made;
      }),
    list: (accountId) => Effect.sync(() => ofAccount(tables, accountId)),
    get: (accountId, id) => Effect.sync(() => rowOf(tables, accountId, id)),
    change: (accountId, id, { now, ...change }) =>
      Effect.gen(function* () {
        const row = rowOf(tables, accountId, id);
        if (row === null) return null;
        if (row.sealed.version !== change.sealed.version - 1) return yield* new Fenced({ id });
        const changed = { ...row, ...change, updatedAt: now };
        tables.modelProviders.set(id, changed);
        return changed;
      }),
    remove: (accountId, id) =>
      Effect.sync(() => rowOf(tables, accountId, id) !== null && tables.modelProviders.delete(id)),
    sessionOf: (sandboxId) =>
      Effect.sync(() => {
        const sandbox = tables.sandboxes.get(sandboxId)?.record;
        const session = tables.sessions.get(sandbox?.sessionId ?? "")?.record;
        return sandbox === undefined || session === undefined || sandbox.endedAt !== null
          ? null
          : { sessionId: session.id, projectId: session.projectId };
      }),
    ofSandbox: (sandboxId, name) =>
      Effect.sync(() => {
        const sandbox = tables.sandboxes.get(sandboxId)?.record;
        const session = tables.sessions.get(sandbox?.sessionId ?? "")?.record;
        if (sandbox === undefined || session === undefined || sandbox.endedAt !== null) return null;
        const provider = ofAccount(tables, session.accountId).find((one) => one.name === name);
        return provider === undefined
          ? null
          : { provider, sessionId: session.id, projectId: session.projectId };
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

const usage = Layer.effect(
  ModelUsage,
  Effect.map(Tables, (tables) => ({
    add: ({ sessionId, projectId, model, tokens, estimated, cost, now }) =>
      Effect.sync(() => {
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
      }),
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
