/** The project of this directory: the one whose repository a remote of the clone names. */
import { parseUuid } from "../domain/ids.ts";
import { type Client, type Page, type PageQuery, readPages } from "./client.ts";
import type { Answer } from "./contract.ts";
import { gitOutput } from "./programs.ts";

type Project = Answer<"GET /v1/projects">["projects"][number];

/** The addresses of the clone's remotes, `origin` first. None outside of a clone, or without git. */
export const remotes = async (): Promise<readonly string[]> => {
  const text = await gitOutput("config", "--get-regexp", String.raw`^remote\..*\.url$`);
  const lines = (text ?? "").split("\n").filter((line) => line.includes(" "));
  const origin = lines.filter((line) => line.startsWith("remote.origin.url "));
  return [...new Set([...origin, ...lines])].map((line) => line.slice(line.indexOf(" ") + 1));
};

/**
 * An address without what does not tell repositories apart: scheme, user, port, case of the host, `.git`. So the https and the ssh
 * address of one repository are equal.
 */
export const repositoryKey = (address: string): string => {
  const scp = /^(?:[^@/\s]+@)?([^:/\s]+):(?!\/\/)(.+)$/.exec(address.trim());
  const url = scp === null ? URL.parse(address.trim()) : null;
  const [host, path] =
    scp === null ? [url?.hostname ?? "", url?.pathname ?? address] : [scp[1] ?? "", scp[2] ?? ""];
  return `${host.toLowerCase()}/${path.replace(/^\/+|\/+$|\.git\/*$/g, "")}`;
};

const GITHUB_HOST = "github.com";

/** The owner and the name of a repository on GitHub. Null if it is elsewhere. */
export const onGitHub = (remote: string): { readonly owner: string; readonly name: string } | null => {
  const [host, owner, name, more] = repositoryKey(remote).split("/");
  return host === GITHUB_HOST && owner !== undefined && name !== undefined && more === undefined
    ? { owner, name }
    : null;
};

/** Whether a remote is the project's repository, at the service or where the service has it from. */
export const isOfProject = (
  remote: string,
  { id, repository }: Pick<Project, "id" | "repository">,
): boolean => {
  const key = repositoryKey(remote);
  const hostedId = /\/v1\/git\/([0-9a-f-]{36})$/.exec(`/${key}`)?.[1];
  if (hostedId !== undefined && parseUuid(hostedId) !== null) return hostedId === id;
  if (repository.kind === "git") return key === repositoryKey(repository.url);
  if (repository.kind === "hosted") return false;
  const { owner, name, api_url: api } = repository;
  // An own server's API is at its host. GitHub's own is not.
  const host =
    api === undefined
      ? GITHUB_HOST
      : (URL.parse(api)?.hostname ?? "").replace(/^api\.github\.com$/, GITHUB_HOST);
  return key.toLowerCase() === `${host}/${owner}/${name}`.toLowerCase();
};

/** @returns the project's id, or null if no remote is a project's or several projects have it */
export const projectHere = async (client: Client): Promise<string | null> => {
  const addresses = await remotes();
  if (addresses.length === 0) return null;
  const projects: Project[] = [];
  const read = async (query: PageQuery): Promise<Page<Project>> => {
    const { value } = await client.call("GET /v1/projects", { query });
    return { things: value.projects, next: value.next_cursor };
  };
  for await (const things of readPages(read)) projects.push(...things);
  for (const address of addresses) {
    const [only, second] = projects.filter((project) => isOfProject(address, project));
    if (only !== undefined) return second === undefined ? only.id : null;
  }
  return null;
};
