/** What may be asked of the workspace. Paths are checked before a program gets them. */
import { isInside, type WorkspaceSides } from "../../src/domain/session/workspace.ts";

/** One question about the workspace. */
export type WorkspaceRead =
  | ({ readonly of: "changes" } & WorkspaceSides)
  /** `path`: only this file. Null means all. */
  | ({ readonly of: "diff"; readonly path: string | null } & WorkspaceSides)
  /** `path` of a directory or a file; empty: the workspace itself. */
  | { readonly of: "files"; readonly path: string };

const COMMIT = /^[0-9a-f]{40}$/;

/** Reads the query of a request. @returns null if it is invalid */
export const readQuery = (of: WorkspaceRead["of"], query: string): WorkspaceRead | null => {
  let parameters: URLSearchParams;
  try {
    // Unlike URLSearchParams, this refuses bytes that are not UTF-8.
    decodeURIComponent(query);
    parameters = new URLSearchParams(query);
  } catch {
    return null;
  }
  const names = [...parameters.keys()];
  const parameterNames =
    of === "files" ? ["path"] : of === "diff" ? ["base", "pushed", "path"] : ["base", "pushed"];
  if (new Set(names).size !== names.length || names.some((name) => !parameterNames.includes(name)))
    return null;
  const path = parameters.get("path");
  if (path !== null && path !== "" && !isInside(path)) return null;
  if (of === "files") return { of, path: path ?? "" };
  const [base, pushed] = [parameters.get("base") ?? "", parameters.get("pushed") ?? ""];
  if (!COMMIT.test(base) || !COMMIT.test(pushed) || path === "") return null;
  return of === "diff" ? { of, base, pushed, path } : { of, base, pushed };
};
