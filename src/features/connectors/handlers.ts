/** Handlers of connectors/api.ts. No answer, log or error contains a credential. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { HttpApiBuilder } from "effect/http-api";
import { catalogueChanges, toolPin, type CatalogueTool } from "../../domain/connector/catalogue.ts";
import { ruleFor, type Connector, type Executor } from "../../domain/connector/connector.ts";
import { shownName } from "../../domain/connector/tool-name.ts";
import { Manifests } from "../../services/projects/manifests.ts";
import { withAudit } from "../../services/audit.ts";
import { refreshCatalogue } from "../../services/connectors/catalogues.ts";
import { catalogueFor, catalogueKey } from "../../services/connectors/connectors.ts";
import { Connectors, type StoredCatalogue } from "../../store/ports/connectors/connectors.ts";
import { ExecutorCalls } from "../../store/ports/connectors/executor-calls.ts";
import { Caller } from "../../http/api/access.ts";
import { Conflict } from "../../http/api/errors.ts";
import { withApiErrors, projectFor, requireProject } from "../../http/steps/answers.ts";
import { authorize, deleteCredential, putCredential } from "./credentials.ts";
import { connectorFor, connectorWire, leftOutWire, makeAbout, type Place } from "./wire.ts";
import { instantOrNull, pageRequest, wireForm } from "../../http/steps/wire.ts";
import { CallWire, ConnectorsGroup } from "./api.ts";
import { Platform } from "../../http/api/platform.ts";

const list = Effect.fnUntraced(function* (pid: string) {
  const project = yield* projectFor(yield* Caller, pid);
  const { executor, errors } = yield* (yield* Manifests).current(project);
  const readAbout = yield* makeAbout(pid);
  return {
    connectors: executor.connectors.map((connector) => connectorWire(connector, readAbout(connector))),
    default_policy: executor.defaultPolicy,
    errors: errors
      .filter(({ path }) => path === null || /^(?:connectors|executor)\b/.test(path))
      .map(({ path, message, line }) => ({ path, message, line })),
  };
});

const requestText = ({ request }: CatalogueTool): string | null =>
  request === undefined ? null : `${request.method} ${request.path}`;

const toolShape = (tool: CatalogueTool) => ({
  description: tool.description,
  input_schema: tool.inputSchema,
  request: requestText(tool),
});

const catalogueWire = (executor: Executor, connector: Connector, row: StoredCatalogue | null) => {
  const { slug } = connector;
  const latest = row?.latest ?? null;
  const acceptedCatalogue = row?.accepted ?? null;
  const before = new Map((acceptedCatalogue?.catalogue.tools ?? []).map((tool) => [tool.name, tool]));
  return {
    slug,
    pin: latest?.pin ?? null,
    refreshed_at: instantOrNull(latest?.at ?? null),
    accepted_at: instantOrNull(acceptedCatalogue?.at ?? null),
    accepted_by: acceptedCatalogue?.by ?? null,
    failure: row?.failure ?? null,
    removed: catalogueChanges(acceptedCatalogue?.catalogue ?? null, latest?.catalogue ?? null).removed,
    tools: (latest?.catalogue.tools ?? []).map((tool) => {
      const former = before.get(tool.name);
      const { policy, rule } = ruleFor(executor, connector, tool.name);
      const isSame = former !== undefined && toolPin(former) === toolPin(tool);
      const state =
        former === undefined ? ("new" as const) : isSame ? ("accepted" as const) : ("changed" as const);
      return {
        name: tool.name,
        shown: shownName(slug, tool.name),
        description: tool.description,
        input_schema: tool.inputSchema,
        request: requestText(tool),
        policy,
        rule,
        state,
        accepted: former === undefined || isSame ? null : toolShape(former),
      };
    }),
    ...leftOutWire(latest?.catalogue),
  };
};

const catalogue = Effect.fnUntraced(function* (place: Place) {
  const { connector, executor } = yield* connectorFor(place);
  const storedCatalogue = catalogueFor(
    connector,
    yield* (yield* Connectors).catalogue(place.pid, place.slug),
  );
  return catalogueWire(executor, connector, storedCatalogue);
});

type Action = { readonly action: "refresh" } | { readonly action: "accept"; readonly pin: string };

const changeCatalogue = Effect.fnUntraced(function* (place: Place, wish: Action) {
  const { connector } = yield* connectorFor(place);
  const { pid: projectId, slug } = place;
  if (wish.action === "refresh") yield* refreshCatalogue(projectId, connector, (yield* Caller).user.id);
  else {
    const by = { pin: wish.pin, userId: (yield* Caller).user.id, now: yield* Clock.currentTimeMillis };
    const key = catalogueKey(projectId, connector);
    const row = { action: "connector.tools_accepted", target: slug, changes: { pin: wish.pin } } as const;
    const acceptance = (yield* Connectors).accept(key, by);
    if (!(yield* acceptance.pipe(withAudit((isAccepted) => (isAccepted ? row : null)))))
      return yield* new Conflict({
        error:
          "The connector's tools are not those that you looked at. Look at them again, then accept them.",
        code: "catalogue_changed",
      });
  }
  return yield* catalogue(place);
});

const callForm = wireForm(CallWire);

export const connectorsHandlers = HttpApiBuilder.group(
  Platform.add(ConnectorsGroup),
  "connectors",
  (handlers) =>
    handlers
      .handle("list", ({ params }) => withApiErrors(list(params.pid)))
      .handle("putCredential", ({ params, payload }) => withApiErrors(putCredential(params, payload)))
      .handle("authorize", ({ params }) => withApiErrors(authorize(params)))
      .handle("deleteCredential", ({ params }) => withApiErrors(deleteCredential(params)))
      .handle("catalogue", ({ params }) => withApiErrors(catalogue(params)))
      .handle("changeCatalogue", ({ params, payload }) => withApiErrors(changeCatalogue(params, payload)))
      .handle("calls", ({ params, query }) =>
        withApiErrors(
          Effect.gen(function* () {
            yield* requireProject(yield* Caller, params.pid);
            const { session_id: sessionId, connector } = query;
            const page = yield* (yield* ExecutorCalls).list(params.pid, {
              ...pageRequest(query),
              sessionId,
              connector,
            });
            return { calls: page.items.map(callForm), next_cursor: page.nextCursor };
          }),
        ),
      ),
);
