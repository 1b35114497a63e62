/** Checks a request before anything of it is used, and reads its Dockerfile. */
import { readFile, readdir, realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import type { BuildRequest } from "../port.ts";
import { DOCKERFILE_BYTES_MAX, type Stage, parseDockerfile } from "../../domain/dockerfile.ts";
import { buildError } from "./failure.ts";

/** A valid directory name that cannot lead elsewhere. */
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** @throws Error for a mistake of the caller */
export const checkRequest = async ({ id, layerStore, output }: BuildRequest): Promise<void> => {
  if (!ID.test(id)) throw new Error("a build's id is a lower-case UUID");
  if (layerStore === "") throw new Error("a build needs the key of its layer store");
  if ((await readdir(output)).length > 0) throw new Error("the output of a build must be empty");
};

/**
 * Reads the Dockerfile of a request. The context may have symbolic links to anywhere: a file outside is not read.
 * @throws BuildError `context_missing` or `syntax`
 */
export const readDockerfile = async (request: BuildRequest): Promise<readonly Stage[]> => {
  const { contextDirectory, dockerfile } = request;
  const missing = buildError({ code: "context_missing", path: dockerfile });
  const context = await realpath(contextDirectory).catch(() => null);
  const path = await realpath(join(contextDirectory, dockerfile)).catch(() => null);
  if (context === null || path === null || !path.startsWith(context + sep)) throw missing;
  const found = await stat(path);
  if (!found.isFile()) throw missing;
  if (found.size > DOCKERFILE_BYTES_MAX)
    throw buildError({ code: "syntax", line: 1, problem: "the Dockerfile is larger than 1 MiB" });
  const source = await readFile(path, "utf8");
  const parsed = parseDockerfile(source);
  if (parsed.kind === "error")
    throw buildError({ code: "syntax", line: parsed.line, problem: parsed.problem });
  return parsed.stages;
};
