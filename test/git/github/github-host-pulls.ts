/** The pull requests of a code host (github-host.ts), beside the branches of its bare repositories. */
import { join } from "node:path";
import { git, gitOk } from "../git-client.ts";

export const OWNER = "acme";

interface Pull {
  readonly number: number;
  readonly title: string;
  readonly body: string;
  readonly head: string;
  readonly base: string;
  state: "open" | "closed";
  mergedAt: string | null;
  mergeCommit: string | null;
  headSha: string;
}

export interface Answer {
  readonly status: number;
  readonly json: unknown;
}

export const said = (status: number, message: string, errors: readonly unknown[] = []): Answer => ({
  status,
  json: {
    message,
    documentation_url: "https://docs.example.org/rest",
    ...(errors.length > 0 ? { errors } : {}),
  },
});
export const notFound = said(404, "Not Found");

/** The commit of a ref, or null if it does not exist. */
export const tipOf = async (bare: string, ref: string): Promise<string | null> => {
  const { code, stdout } = await git(bare, "rev-parse", "--verify", "--quiet", ref);
  return code === 0 ? stdout.trim() : null;
};

export class HostPulls {
  readonly #root: string;
  readonly #pulls = new Map<string, Pull[]>();

  constructor(root: string) {
    this.#root = root;
  }

  of(name: string): Pull[] {
    const pulls = this.#pulls.get(name) ?? [];
    this.#pulls.set(name, pulls);
    return pulls;
  }

  /** As a person does on the host's page. */
  async merge(name: string, number: number): Promise<string> {
    const answer = await this.#mergePull(name, number, {});
    if (answer.status !== 200) throw new Error(`not merged: ${JSON.stringify(answer)}`);
    return (answer.json as { sha: string }).sha;
  }

  close(name: string, number: number): void {
    const pull = this.of(name).find((found) => found.number === number);
    if (pull !== undefined) pull.state = "closed";
  }

  /** What pushes did to open ones: their head moved on, or the base has it now. */
  async #refresh(name: string): Promise<void> {
    const bare = join(this.#root, `${name}.git`);
    for (const pull of this.of(name).filter(({ state }) => state === "open")) {
      const [head, base] = [
        await tipOf(bare, `refs/heads/${pull.head}`),
        await tipOf(bare, `refs/heads/${pull.base}`),
      ];
      pull.headSha = head ?? pull.headSha;
      if (head === null || base === null) continue;
      if ((await git(bare, "merge-base", "--is-ancestor", head, base)).code === 0)
        Object.assign(pull, { state: "closed", mergedAt: new Date().toISOString(), mergeCommit: base });
    }
  }

  #pullWire(pull: Pull): unknown {
    const { number, title, body, state, mergedAt, mergeCommit, headSha, head, base } = pull;
    return {
      number,
      title,
      body,
      state,
      merged_at: mergedAt,
      merge_commit_sha: mergeCommit,
      user: { login: "somebody" },
      head: { ref: head, sha: headSha, label: `${OWNER}:${head}` },
      base: { ref: base, sha: headSha },
    };
  }

  async answer(request: {
    readonly method: string;
    readonly name: string;
    readonly path: readonly string[];
    readonly query: URLSearchParams;
    readonly body: Record<string, unknown>;
  }): Promise<Answer> {
    const { method, name, path, query, body } = request;
    await this.#refresh(name);
    const pulls = this.of(name);
    const pull = pulls.find(({ number }) => String(number) === path[0]);
    const wire = (found: Pull): Answer => ({ status: 200, json: this.#pullWire(found) });
    if (method === "GET" && path.length === 0) return this.#pullList(name, query);
    if (method === "POST" && path.length === 0) return this.#createPull(name, body);
    if (pull === undefined) return notFound;
    if (method === "GET") return wire(pull);
    if (method === "PUT") return this.#mergePull(name, pull.number, body);
    if (pull.mergedAt === null && body["state"] === "closed") pull.state = "closed";
    return wire(pull);
  }

  #pullList(name: string, query: URLSearchParams): Answer {
    const [state, head] = [query.get("state"), query.get("head")];
    const size = Number(query.get("per_page") ?? 30);
    const page = Number(query.get("page") ?? 1);
    const found = this.of(name)
      .filter((pull) => state === "all" || pull.state === state)
      .filter((pull) => head === null || head === `${OWNER}:${pull.head}`);
    const sorted = query.get("direction") === "asc" ? found : found.toReversed();
    const json = sorted.slice((page - 1) * size, page * size).map((pull) => this.#pullWire(pull));
    return { status: 200, json };
  }

  async #createPull(name: string, body: Record<string, unknown>): Promise<Answer> {
    const bare = join(this.#root, `${name}.git`);
    const [head, base] = [String(body["head"]), String(body["base"])];
    const tips = [await tipOf(bare, `refs/heads/${head}`), await tipOf(bare, `refs/heads/${base}`)];
    const [headSha, baseSha] = tips;
    if (headSha === undefined || headSha === null || baseSha === null || baseSha === undefined)
      return said(422, "Validation Failed", [{ resource: "PullRequest", field: "head", code: "invalid" }]);
    const pulls = this.of(name);
    if (pulls.some((pull) => pull.head === head && pull.base === base && pull.state === "open"))
      return said(422, "Validation Failed", [
        {
          resource: "PullRequest",
          code: "custom",
          message: `A pull request already exists for ${OWNER}:${head}.`,
        },
      ]);
    if ((await git(bare, "merge-base", "--is-ancestor", headSha, baseSha)).code === 0)
      return said(422, "Validation Failed", [
        { resource: "PullRequest", code: "custom", message: `No commits between ${base} and ${head}` },
      ]);
    const pull: Pull = {
      number: pulls.length + 1,
      title: String(body["title"]),
      body: String(body["body"]),
      head,
      base,
      state: "open",
      mergedAt: null,
      mergeCommit: null,
      headSha,
    };
    pulls.push(pull);
    return { status: 201, json: this.#pullWire(pull) };
  }

  async #mergePull(name: string, number: number, body: Record<string, unknown>): Promise<Answer> {
    const bare = join(this.#root, `${name}.git`);
    await this.#refresh(name);
    const pull = this.of(name).find((found) => found.number === number);
    if (pull === undefined) return notFound;
    if (pull.state !== "open") return said(405, "Pull Request is not mergeable");
    if (body["sha"] !== undefined && body["sha"] !== pull.headSha)
      return said(409, "Head branch was modified. Review and try the merge again.");
    const base = await gitOk(bare, "rev-parse", `refs/heads/${pull.base}`);
    const tree = await git(bare, "merge-tree", "--write-tree", base, pull.headSha);
    if (tree.code !== 0) return said(405, "Pull Request is not mergeable");
    const message = String(body["commit_title"] ?? `Merge pull request #${number}`);
    const sha = await gitOk(
      bare,
      "commit-tree",
      tree.stdout.trim(),
      "-p",
      base,
      "-p",
      pull.headSha,
      "-m",
      message,
    );
    await gitOk(bare, "update-ref", `refs/heads/${pull.base}`, sha, base);
    Object.assign(pull, { state: "closed", mergedAt: new Date().toISOString(), mergeCommit: sha });
    return { status: 200, json: { sha, merged: true, message: "Pull Request successfully merged" } };
  }
}
