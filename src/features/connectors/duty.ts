/**
 * Fetches the tools of connectors again, so that people see in time that a server changed them. It looks at what was
 * tried longest ago, and takes no input. Beside it begins the duty that ends sessions at these servers.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import {
  followRepository,
  hasRepositoryTools,
  refreshCatalogue,
} from "../../services/connectors/catalogues.ts";
import { projectExecutor } from "../../services/connectors/connectors.ts";
import { Directory } from "../../services/directory.ts";
import { Connectors } from "../../store/ports/connectors/connectors.ts";
import { watchServerSessions } from "../../duties/server-sessions.ts";
import { DUTIES } from "../../services/duties.ts";
import { dutyPart, runDuty } from "../../services/duty.ts";

/** How old a catalogue may be. */
const REFRESH_MS = 6 * 60 * 60_000;
/** How many catalogues a round refreshes, and how many of them at a time. */
const ROUND = 100;
const AT_ONCE = 4;

/**
 * One round. The catalogue of a connector that the manifest does not have any more is removed. Tools of the repository that were not
 * read when the manifest was, because the service was stopped, are read now.
 */
export const refreshOutdated = Effect.gen(function* () {
  const store = yield* Connectors;
  const catalogues = yield* store.outdated((yield* Clock.currentTimeMillis) - REFRESH_MS, ROUND);
  const refresh = Effect.fnUntraced(function* (projectId: string, slug: string) {
    const executor = yield* projectExecutor(projectId);
    if (executor === null) return;
    const connector = executor.connectors.find((one) => one.slug === slug);
    if (connector === undefined) return yield* store.forget(projectId, slug);
    // Where each person has a credential of her own, the owner who accepted the tools looks after them.
    const acceptedCatalogue = (yield* store.catalogue(projectId, slug))?.accepted ?? null;
    yield* refreshCatalogue(projectId, connector, acceptedCatalogue?.by ?? null);
  });
  yield* Effect.forEach(
    catalogues,
    ({ projectId, slug }) => dutyPart("connectors", refresh(projectId, slug)),
    {
      concurrency: AT_ONCE,
      discard: true,
    },
  );
  const projects = [...(yield* Directory).all()].map(({ project }) => project);
  for (const { id, status } of projects)
    if (status === "active" && (yield* hasRepositoryTools(id)))
      yield* dutyPart("connectors", followRepository(id));
});

export const connectorsLayer = Layer.effectDiscard(
  runDuty("connectors", {
    round: refreshOutdated,
    first: "a period",
    periodMs: DUTIES.connectors.periodMs,
  }).pipe(Effect.andThen(watchServerSessions)),
);
