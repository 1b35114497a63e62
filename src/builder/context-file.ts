/** Reads the Dockerfile of a context that a stranger wrote. */
import { readFile, realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import {
  type Dockerfile,
  DOCKERFILE_BYTES_MAX,
  hereDocumentLine,
  parseDockerfile,
} from "../domain/environment/dockerfile.ts";
import { type BuildahVersion, noHereDocuments, readsHereDocuments } from "./buildah-version.ts";
import { BuildError, type BuildRequest } from "./port.ts";

const toBuildError = (failure: BuildError["failure"]): BuildError => new BuildError({ failure });

/**
 * Reads the Dockerfile of a request. The context may have symbolic links to anywhere: a file outside is not read.
 * @param version of the buildah that will read it. Null if unknown: nothing is refused because of it.
 * @throws BuildError `context_missing` or `syntax`
 */
export const readDockerfile = async (
  { contextDirectory, dockerfile }: Pick<BuildRequest, "contextDirectory" | "dockerfile">,
  { version }: { readonly version: BuildahVersion | null } = { version: null },
): Promise<Dockerfile> => {
  const missing = toBuildError({ code: "context_missing", path: dockerfile });
  const context = await realpath(contextDirectory).catch(() => null);
  const path = await realpath(join(contextDirectory, dockerfile)).catch(() => null);
  if (context === null || path === null || !path.startsWith(context + sep)) throw missing;
  const stats = await stat(path);
  if (!stats.isFile()) throw missing;
  if (stats.size > DOCKERFILE_BYTES_MAX)
    throw toBuildError({ code: "syntax", line: 1, problem: "the Dockerfile is larger than 1 MiB" });
  const source = await readFile(path, "utf8");
  const parse = parseDockerfile(source);
  if (parse.kind === "error")
    throw toBuildError({ code: "syntax", line: parse.line, problem: parse.problem });
  const here = version === null || readsHereDocuments(version) ? null : hereDocumentLine(source);
  if (here !== null) throw toBuildError({ code: "syntax", line: here, problem: noHereDocuments(version) });
  return parse;
};
