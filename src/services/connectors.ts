/**
 * The present connectors of a project: the manifest of the default branch, joined with the credentials and catalogues
 * that people stored and accepted.
 *
 *  C1 A credential is used for the origin for which it was stored, and a catalogue for the URL at which it was seen. A
 *     manifest that moves a connector has neither there.
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
import {
  authorized,
  credentialMask,
  credentialPlace,
  maskJson,
  originOf,
} from "../domain/connector-credential.ts";
import type { Redactor } from "../domain/redactor.ts";
import { unsealSecret } from "../domain/secret.ts";
import { ConnectorServers, type ServerTarget } from "../mcp/port.ts";
import { Connectors, type StoredCatalogue } from "../store/ports/connectors.ts";
import { Directory } from "./directory.ts";
import { Keyring } from "./keyring.ts";

/** The longest reason that is stored. */
const REASON_LENGTH = 500;

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

/** An opened credential, or the reason why it is missing. */
export type Opened =
  | { readonly credential: string | null; readonly missing: null }
  | { readonly credential: null; readonly missing: string };

const missing = (why: string): Opened => ({ credential: null, missing: why });

/** Opens the credential that a connector needs (C1). */
export const openCredential = Effect.fnUntraced(function* (projectId: string, connector: Connector) {
  const { slug, auth, url } = connector;
  if (auth.kind === "none") return { credential: null, missing: null } satisfies Opened;
  const origin = originOf(url);
  const sealed = yield* (yield* Connectors).credential(projectId, slug);
  if (sealed === null)
    return missing(
      `The connector ${slug} has no credential. A person can store one: platform connectors set-credential ${slug}.`,
    );
  if (sealed.origin !== origin)
    return missing(
      `The connector ${slug} moved to ${origin}, and its credential is for ${sealed.origin}. A person can store one for the new place.`,
    );
  const value = unsealSecret((yield* Keyring).secrets, credentialPlace(sealed), sealed.envelope);
  return Result.isSuccess(value)
    ? ({ credential: value.success, missing: null } satisfies Opened)
    : missing(`The credential of the connector ${slug} cannot be opened. A person can store it again.`);
});

/** Where a connector's server is, with the credential. */
export const targetOf = (
  { url, auth }: Connector,
  { credential, protocol }: { readonly credential: string | null; readonly protocol: string | null },
): ServerTarget => ({ ...authorized(url, auth, credential), protocol });

/** A text from a server, for people and for the database: masked, one line, without what no column holds. */
export const toldBy = (mask: Redactor, text: string): string =>
  mask
    .redact(text)
    .replaceAll(/\p{C}+/gu, " ")
    .toWellFormed()
    .slice(0, REASON_LENGTH);

/** A tool without the credential in its texts. Null: it cannot be looked through. */
const masked = (mask: Redactor, tool: CatalogueTool): CatalogueTool =>
  isShallow(tool.inputSchema) ? (maskJson(mask, tool) as CatalogueTool) : tool;

/**
 * Asks a connector's server for its tools and stores the answer. A server that does not answer keeps what was seen of
 * it.
 */
export const refreshCatalogue = Effect.fnUntraced(function* (projectId: string, connector: Connector) {
  const store = yield* Connectors;
  const { slug, url } = connector;
  const key = { projectId, slug, url };
  const failed = (failure: string) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => store.failed(key, { failure, now }));
  const opened = yield* openCredential(projectId, connector);
  if (opened.missing !== null) return yield* failed(opened.missing);
  const { credential } = opened;
  const mask = credentialMask(credential);
  // Null: the server may speak another revision than the last time.
  const listed = yield* Effect.result(
    (yield* ConnectorServers).list(targetOf(connector, { credential, protocol: null })),
  );
  if (Result.isFailure(listed))
    return yield* failed(`${new URL(url).host} ${toldBy(mask, listed.failure.why)}.`);
  const { tools, protocol } = listed.success;
  const catalogue = readCatalogue(
    slug,
    tools.map((tool) => masked(mask, tool)),
  );
  const at = yield* Clock.currentTimeMillis;
  yield* store.saw(key, { catalogue, pin: cataloguePin(catalogue), protocol: toldBy(mask, protocol), at });
});
