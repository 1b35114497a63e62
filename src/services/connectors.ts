/**
 * The present connectors of a project: the manifest of the default branch, joined with the credentials and catalogues
 * that people stored and accepted.
 *
 *  C1 A catalogue is used for the URL at which it was seen. A manifest that moves a connector has none there.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import {
  cataloguePin,
  isShallow,
  readCatalogue,
  usableTools,
  type CatalogueTool,
} from "../domain/catalogue.ts";
import type { Connector, Executor } from "../domain/connector.ts";
import { authorized, maskJson } from "../domain/connector-credential.ts";
import type { Redactor } from "../domain/redactor.ts";
import { ConnectorServers, type ServerTarget } from "../mcp/port.ts";
import { Connectors, type StoredCatalogue } from "../store/ports/connectors.ts";
import { openCredential } from "./connector-credentials.ts";
import { withCredential } from "./connector-use.ts";
import { Directory } from "./directory.ts";
import { toldBy } from "./told.ts";

/** The connectors of a project, by the manifest that is in force. */
export const executorOf = Effect.fnUntraced(function* (
  projectId: string,
): Effect.fn.Return<Executor | null, never, Directory> {
  return (yield* Directory).known(projectId)?.manifest.executor ?? null;
});

/** C1. The stored catalogue of this connector. Null: none was seen at its URL. */
export const catalogueFor = (
  connector: Pick<Connector, "slug" | "url">,
  stored: StoredCatalogue | null | undefined,
): StoredCatalogue | null => (stored?.url === connector.url ? stored : null);

/** The tools of a connector that a person accepted and that are still the same. */
export const toolsOf = (catalogue: StoredCatalogue | null): readonly CatalogueTool[] =>
  usableTools(catalogue?.accepted?.catalogue ?? null, catalogue?.latest?.catalogue ?? null);

/** Where a connector's server is, with the credential. */
export const targetOf = (
  { url, auth }: Connector,
  { credential, protocol }: { readonly credential: string | null; readonly protocol: string | null },
): ServerTarget => ({ ...authorized(url, auth, credential), protocol });

/** A tool without the credential in its texts. Null: it cannot be looked through. */
const masked = (mask: Redactor, tool: CatalogueTool): CatalogueTool =>
  isShallow(tool.inputSchema) ? (maskJson(mask, tool) as CatalogueTool) : tool;

/**
 * Asks a connector's server for its tools and stores the answer. A server that does not answer keeps what was seen of
 * it.
 *
 * @param userId the person with whose credential it is asked, if each has an own one. Null: no person.
 */
export const refreshCatalogue = Effect.fnUntraced(function* (
  projectId: string,
  connector: Connector,
  userId: string | null,
) {
  const store = yield* Connectors;
  const { slug, url } = connector;
  const key = { projectId, slug, url };
  const failed = (failure: string) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => store.failed(key, { failure, now }));
  const opened = yield* openCredential(projectId, connector, userId);
  if (opened.missing !== null) return yield* failed(opened.missing);
  const servers = yield* ConnectorServers;
  // Null: the server may speak another revision than the last time.
  const { answer, mask } = yield* withCredential(connector, opened.credential, (credential) =>
    servers.list(targetOf(connector, { credential, protocol: null })),
  );
  if (Result.isFailure(answer)) {
    const fault = answer.failure;
    return yield* failed(
      fault._tag === "CredentialFault" ? fault.message : `${new URL(url).host} ${toldBy(mask, fault.why)}.`,
    );
  }
  const { tools, protocol } = answer.success;
  const catalogue = readCatalogue(
    slug,
    tools.map((tool) => masked(mask, tool)),
  );
  const at = yield* Clock.currentTimeMillis;
  yield* store.saw(key, { catalogue, pin: cataloguePin(catalogue), protocol: toldBy(mask, protocol), at });
});

/**
 * The same after a person stored an own credential or signed in. A server may show people different tools. So the tools of a
 * project are those that its owners see, or that the first person saw.
 */
export const refreshAfter = Effect.fnUntraced(function* (
  projectId: string,
  connector: Connector,
  by: { readonly userId: string; readonly isOwner: boolean },
) {
  if (connector.credential === "user" && !by.isOwner) {
    const stored = yield* (yield* Connectors).catalogue(projectId, connector.slug);
    const latest = catalogueFor(connector, stored)?.latest ?? null;
    if (latest !== null) return;
  }
  yield* refreshCatalogue(projectId, connector, by.userId);
});
