/**
 * The present connectors of a project: the manifest of the default branch, joined with the credentials and catalogues
 * that people stored and accepted.
 *
 *  C1 A catalogue is used for the URL and the kind with which it was seen. A manifest that moves a connector has none there.
 */
import * as Effect from "effect/Effect";
import { presentCatalogue, usableTools, type CatalogueTool } from "../../domain/connector/catalogue.ts";
import type { Connector, Executor } from "../../domain/connector/connector.ts";
import { authorizeRequest } from "../../domain/connector/connector-credential.ts";
import type { ServerTarget } from "../../connectors/port.ts";
import type { CatalogueKey, StoredCatalogue } from "../../store/ports/connectors/connectors.ts";
import { Directory } from "../directory.ts";

/** The connectors of a project, by the manifest that is in force. */
export const projectExecutor = Effect.fnUntraced(function* (
  projectId: string,
): Effect.fn.Return<Executor | null, never, Directory> {
  return (yield* Directory).known(projectId)?.manifest.executor ?? null;
});

/** Names the catalogue of a connector (C1). Of an MCP server it is the URL alone. */
export const catalogueKey = (projectId: string, { slug, kind, url }: Connector): CatalogueKey => ({
  projectId,
  slug,
  url: kind === "mcp" ? url : `${kind} ${url}`,
});

/** C1. The stored catalogue of this connector. Null if none was seen at its URL. */
export const catalogueFor = (
  connector: Connector,
  catalogue: StoredCatalogue | null | undefined,
): StoredCatalogue | null => {
  if (catalogue?.url !== catalogueKey("", connector).url) return null;
  const { latest } = catalogue;
  return latest === null
    ? catalogue
    : { ...catalogue, latest: { ...latest, catalogue: presentCatalogue(connector.slug, latest.catalogue) } };
};

/** The tools of a connector that a person accepted and that are still the same. */
export const acceptedTools = (catalogue: StoredCatalogue | null): readonly CatalogueTool[] =>
  usableTools(catalogue?.accepted?.catalogue ?? null, catalogue?.latest?.catalogue ?? null);

/** Where a connector's server is, with the credential. */
export const serverTarget = (
  { url, auth, headers }: Connector,
  { credential, protocol }: { readonly credential: string | null; readonly protocol: string | null },
): ServerTarget => {
  const target = authorizeRequest(url, auth, credential);
  return { url: target.url, headers: { ...headers, ...target.headers }, protocol };
};
