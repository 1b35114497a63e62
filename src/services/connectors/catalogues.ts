/**
 * The catalogues of connectors: reading their tools from where they come from, and storing them.
 *
 *  CC1 A source that cannot be read keeps what was seen of it, with the reason.
 *  CC2 Tools of the repository (the manifest's own, and those of a description in a file) follow the default branch: they are read
 *      after each reading of the manifest, and by a duty if that was lost. No server is asked, and no credential is needed.
 *  CC3 A reading that ends after the default branch moved on is followed by another one, so that an old one does not stay.
 */
import { createHash } from "node:crypto";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import {
  cataloguePin,
  isShallow,
  readCatalogue,
  type CatalogueTool,
  type LeftOut,
} from "../../domain/connector/catalogue.ts";
import type { Connector } from "../../domain/connector/connector.ts";
import { authorizeRequest, maskJson } from "../../domain/connector/connector-credential.ts";
import { DESCRIPTION_MAX_BYTES, type ReservedNames } from "../../domain/connector/openapi/description.ts";
import type { Redactor } from "../../domain/secret/redactor.ts";
import { GitBackend } from "../../git/port.ts";
import { ConnectorDescriptions, ConnectorServers } from "../../connectors/port.ts";
import { Connectors } from "../../store/ports/connectors/connectors.ts";
import { openCredential } from "./credentials.ts";
import { withCredential } from "./use.ts";
import { catalogueFor, catalogueKey, serverTarget } from "./connectors.ts";
import { Directory } from "../directory.ts";
import { fileText } from "../projects/repository.ts";
import { toldBy } from "../told.ts";

/** Raised when the same source gives other tools than before. */
const READER = 1;
/** How often a reading follows one that was overtaken (CC3). The next reading of the manifest repairs the rest. */
const READINGS = 3;

/** The tools of a source, and what they were read from. */
interface Listed {
  readonly tools: readonly CatalogueTool[];
  readonly leftOut: readonly LeftOut[];
  readonly protocol: string;
}

/** A tool without the credential in its texts. One that cannot be looked through is left out later. */
const maskTool = (mask: Redactor, tool: CatalogueTool): CatalogueTool =>
  isShallow(tool.inputSchema) ? (maskJson(mask, tool) as CatalogueTool) : tool;

const put = Effect.fnUntraced(function* (
  projectId: string,
  connector: Connector,
  list: Result.Result<Listed, string>,
) {
  const store = yield* Connectors;
  const key = catalogueKey(projectId, connector);
  const now = yield* Clock.currentTimeMillis;
  if (Result.isFailure(list)) return yield* store.failed(key, { failure: list.failure, now });
  const { tools, leftOut, protocol } = list.success;
  const catalogue = readCatalogue(connector.slug, tools, leftOut);
  yield* store.saw(key, { catalogue, pin: cataloguePin(catalogue), protocol, at: now });
});

/** What the connector itself sets. */
const reservedNames = ({ url, auth, headers }: Connector): ReservedNames => ({
  headers: [...Object.keys(headers), ...(auth.kind === "header" ? [auth.name.toLowerCase()] : [])],
  query: [...new URL(url).searchParams.keys(), ...(auth.kind === "query" ? [auth.name] : [])],
});

/** The identity of what tools are read from. It changes with everything that makes other tools of them. */
const sourceRevision = (connector: Connector, source: unknown): string => {
  const read = JSON.stringify([READER, reservedNames(connector), source]);
  return `${connector.kind} ${createHash("sha256").update(read).digest("hex")}`;
};

const readDescription = Effect.fnUntraced(function* (
  connector: Connector,
  { text, from }: { readonly text: string; readonly from: string },
) {
  const read = yield* Effect.result((yield* ConnectorDescriptions).read(text, reservedNames(connector)));
  return Result.mapError(read, (why) => `The description ${from} cannot be used. ${why}`);
});

/** The tools of an MCP server, or of a description that a server has: what the connector's server is asked for. */
const askServer = Effect.fnUntraced(function* (connector: Connector, credential: string | null) {
  const servers = yield* ConnectorServers;
  const { source, auth } = connector;
  // Null if the server may speak another revision than the last time.
  const target = serverTarget(connector, { credential, protocol: null });
  if (source.from !== "address") return { listed: yield* servers.list(target), text: null };
  const { url } = authorizeRequest(source.url, auth, credential);
  return { listed: null, text: yield* servers.document({ ...target, url }) };
});

const fromServer = Effect.fnUntraced(function* (
  projectId: string,
  connector: Connector,
  userId: string | null,
) {
  const openResult = yield* openCredential(projectId, connector, userId);
  if (openResult.missing !== null) return Result.fail(openResult.missing);
  const { answer, mask } = yield* withCredential(connector, openResult.credential, (credential) =>
    askServer(connector, credential),
  );
  if (Result.isFailure(answer)) {
    const fault = answer.failure;
    return Result.fail(
      fault._tag === "CredentialFault"
        ? fault.message
        : `${new URL(connector.url).host} ${toldBy(mask, fault.why)}.`,
    );
  }
  const { listed, text } = answer.success;
  if (listed !== null)
    return Result.succeed({
      tools: listed.tools.map((tool) => maskTool(mask, tool)),
      leftOut: listed.leftOut.map((each) => maskJson(mask, each) as LeftOut),
      protocol: toldBy(mask, listed.protocol),
    });
  const read = yield* readDescription(connector, { text, from: `at ${new URL(connector.url).host}` });
  return Result.mapBoth(read, {
    onFailure: (why) => toldBy(mask, why),
    onSuccess: ({ tools, leftOut }) => ({
      tools: tools.map((tool) => maskTool(mask, tool)),
      leftOut: leftOut.map((each) => maskJson(mask, each) as LeftOut),
      protocol: sourceRevision(connector, createHash("sha256").update(text).digest("hex")),
    }),
  });
});

/** The description in a file of the default branch. Its blob is its identity. */
const fromFile = Effect.fnUntraced(function* (
  projectId: string,
  connector: Connector,
  { commit, path }: { readonly commit: string | null; readonly path: string },
) {
  const lacking = `The default branch has no file ${path} of at most ${DESCRIPTION_MAX_BYTES} bytes.`;
  if (commit === null) return Result.fail(lacking);
  const reading = fileText({ projectId }, { commit, path, maxBytes: DESCRIPTION_MAX_BYTES });
  const text = yield* Effect.result(reading);
  if (Result.isFailure(text)) return Result.fail(`The file ${path} cannot be read: ${text.failure.message}`);
  if (text.success === null) return Result.fail(lacking);
  return yield* readDescription(connector, { text: text.success, from: path });
});

/** Identifies a source of the repository at a commit. Null if it cannot be told now. */
const sourceIdentity = Effect.fnUntraced(function* (
  projectId: string,
  { source }: Connector,
  commit: string | null,
) {
  if (source.from !== "file") return source;
  if (commit === null) return null;
  const objectIds = (yield* GitBackend).objectIds({ projectId }, { commit, paths: [source.path] });
  const [blob = null] = yield* Effect.orElseSucceed(objectIds, () => []);
  return blob;
});

const isInRepository = ({ source }: Connector): boolean =>
  source.from === "file" || source.from === "manifest";

/** Reads tools of the repository (CC2). @param isForced also if they were read from the same source before */
const readHere = Effect.fnUntraced(function* (projectId: string, connector: Connector, isForced: boolean) {
  const { source } = connector;
  const commit = (yield* Directory).known(projectId)?.manifest.commit ?? null;
  const identity = yield* sourceIdentity(projectId, connector, commit);
  const protocol = sourceRevision(connector, identity);
  const catalogue = catalogueFor(connector, yield* (yield* Connectors).catalogue(projectId, connector.slug));
  const isKnown = identity !== null && catalogue?.failure === null && catalogue.latest?.protocol === protocol;
  if (isKnown && !isForced) return commit;
  const read =
    source.from === "manifest"
      ? Result.succeed({ tools: source.tools, leftOut: [] })
      : yield* fromFile(projectId, connector, { commit, path: source.from === "file" ? source.path : "" });
  yield* put(
    projectId,
    connector,
    Result.map(read, (description) => ({ ...description, protocol })),
  );
  return commit;
});

/** CC3. */
const readInRepository = Effect.fnUntraced(function* (projectId: string, slug: string, isForced: boolean) {
  const directory = yield* Directory;
  for (let reading = 0; reading < READINGS; reading += 1) {
    const now = directory.known(projectId)?.manifest;
    const connector = now?.executor.connectors.find((one) => one.slug === slug);
    if (connector === undefined || !isInRepository(connector)) return;
    const commit = yield* readHere(projectId, connector, isForced);
    if ((directory.known(projectId)?.manifest.commit ?? null) === commit) return;
  }
});

/**
 * Reads a connector's tools from where they come from, and stores them (CC1).
 *
 * @param userId the person with whose credential a server is asked, if each person has one. Null if no person did.
 */
export const refreshCatalogue = Effect.fnUntraced(function* (
  projectId: string,
  connector: Connector,
  userId: string | null,
) {
  yield* isInRepository(connector)
    ? readInRepository(projectId, connector.slug, true)
    : Effect.flatMap(fromServer(projectId, connector, userId), (list) => put(projectId, connector, list));
});

/**
 * The same after a person stored her own credential or signed in. A server may show people different tools. So the tools of a
 * project are those that its owners see, or that the first person saw.
 */
export const refreshAfter = Effect.fnUntraced(function* (
  projectId: string,
  connector: Connector,
  by: { readonly userId: string; readonly isOwner: boolean },
) {
  if (connector.credential === "user" && !by.isOwner) {
    const catalogue = yield* (yield* Connectors).catalogue(projectId, connector.slug);
    const latest = catalogueFor(connector, catalogue)?.latest ?? null;
    if (latest !== null) return;
  }
  yield* refreshCatalogue(projectId, connector, by.userId);
});

/** Reads the tools that come from the repository of a project, if they changed (CC2). */
export const followRepository = Effect.fnUntraced(function* (projectId: string) {
  const connectors = (yield* Directory).known(projectId)?.manifest.executor.connectors ?? [];
  for (const { slug } of connectors.filter(isInRepository)) yield* readInRepository(projectId, slug, false);
});

/** Whether a project has tools that come from its repository. */
export const hasRepositoryTools = Effect.fnUntraced(function* (projectId: string) {
  return (yield* Directory).known(projectId)?.manifest.executor.connectors.some(isInRepository) === true;
});
