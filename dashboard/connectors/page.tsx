/** A project's connectors: what each needs from a person, its tools and what changed in them, and the agents' calls. */
import { useInfiniteQuery } from "@tanstack/react-query";
import type { Answer } from "../../src/cli/contract.ts";
import { orNull, request } from "../api/client.ts";
import { pagedQuery } from "../api/lists.ts";
import type { Project } from "../api/projects.ts";
import { queries } from "../api/queries.ts";
import { projectLink } from "../elements/parts.ts";
import { counted } from "../elements/format.ts";
import { headOf } from "../projects/head.tsx";
import { RoleAct } from "../ui/act.tsx";
import { framedPage } from "../ui/framed-page.tsx";
import { Badge, Callout, CopyBlock, Detail, Empty, More, Prose, Row, Tag, Time } from "../ui/parts.tsx";
import { AccessActs, type Connector, needWords, refresh, SignIn, storedWord, type Words } from "./access.tsx";
import type { Approval } from "./approvals.ts";
import { connector } from "./connector.tsx";
import { WaitingCalls } from "./waiting.tsx";

type Listing = Answer<"GET /v1/projects/:pid/connectors">;
type Call = Answer<"GET /v1/projects/:pid/executor/calls">["calls"][number];

const callsQuery = (pid: string) =>
  pagedQuery(["executor-calls", pid], (query) =>
    request("GET /v1/projects/:pid/executor/calls", { params: { pid }, query }),
  );

/** The words for a state, its colour, and what a person does next. Other states are shown as they are. */
const STATES: Readonly<Record<string, Words>> = {
  ready: ["ready", "good", ""],
  needs_credential: ["needs a credential", "warn", "Store the credential that the server expects."],
  needs_refresh: ["tools unknown", "warn", "Fetch the server's tools."],
  needs_acceptance: ["needs acceptance", "warn", "Look at the new or changed tools, and accept them."],
  failed: ["failed", "bad", ""],
};

const KINDS: Readonly<Record<Connector["kind"], string>> = { mcp: "MCP", openapi: "OpenAPI", http: "HTTP" };

const LINES = `[[connectors]]
slug = "linear"
kind = "mcp"
url = "https://mcp.example.com/mcp"
auth = "bearer"

[[connectors.tools]]
match = "list_*"
policy = "allow"`;

interface About {
  readonly pid: string;
  readonly connector: Connector;
}

const Tools = ({ pid, connector: one }: About) => {
  const { slug, usable, to_accept: open, left_out_total: leftOut, credential, sessions } = one;
  return (
    <Detail>
      {counted(usable, "usable tool")}
      {open > 0 && ` · ${open} to accept`}
      {leftOut > 0 && " · "}
      {leftOut > 0 && <a href={projectLink(pid, `/connectors/${slug}`)}>{`${leftOut} left out`}</a>}
      {credential !== null && ` · ${storedWord(one)} `}
      {credential !== null && <Time at={credential.updated_at} />}
      {one.credential_of === "user" && " · each person has a credential of their own"}
      {!sessions.includes("trigger") && " · not for sessions of triggers"}
    </Detail>
  );
};

const ConnectorRow = ({ pid, connector: one, names }: About & Pick<Shown, "names">) => {
  const { slug, kind, url, state, failure } = one;
  const need = state === "needs_credential" ? needWords(one) : undefined;
  const [word, tone, next] = need ?? STATES[state] ?? [state, "warn", ""];
  const link = projectLink(pid, `/connectors/${slug}`);
  return (
    <Row
      states={<Tag tone={tone}>{word}</Tag>}
      actions={
        <>
          <AccessActs pid={pid} connector={one} />
          {state === "needs_refresh" && (
            <RoleAct
              entry="refresh-connector"
              label="Fetch the tools"
              about={slug}
              does={() => refresh({ pid, slug })}
            />
          )}
        </>
      }
    >
      <a href={link} className="named">
        {slug}
      </a>
      <Detail>
        {`${KINDS[kind]} · `}
        <code>{url}</code>
      </Detail>
      <Tools pid={pid} connector={one} />
      <SignIn connector={one} names={names} />
      {failure !== null && <span className="reason">{failure}</span>}
      {next !== "" && <span>{state === "needs_acceptance" ? <a href={link}>{next}</a> : next}</span>}
    </Row>
  );
};

const CallRow = ({ pid, call }: { readonly pid: string; readonly call: Call }) => (
  <Row states={<Badge status={call.outcome ?? "running"} />} actions={null}>
    <span className="named">
      <code>{`${call.connector} ${call.tool}`}</code>
    </span>
    <Detail>
      <Time at={call.at} />
      {" · "}
      <a href={projectLink(pid, `/sessions/${call.session_id}`)}>session</a>
      {" · "}
      <code>{call.id}</code>
      {" · "}
      <code>{call.arguments_preview}</code>
    </Detail>
    {call.message !== null && <span className="reason">{call.message}</span>}
  </Row>
);

const Calls = ({ pid }: { readonly pid: string }) => {
  const list = useInfiniteQuery(callsQuery(pid));
  const calls = list.data?.pages.flatMap((page) => page.calls) ?? [];
  return (
    <section>
      <h2>Calls</h2>
      {calls.length === 0 ? (
        <Empty title="No calls yet.">Every call of an agent is listed here, also one that was refused.</Empty>
      ) : (
        <ul className="rows">
          {calls.map((call) => (
            <CallRow key={call.id} pid={pid} call={call} />
          ))}
        </ul>
      )}
      <More list={list}>Show older calls</More>
    </section>
  );
};

interface Shown {
  readonly project: Project;
  readonly listing: Listing;
  /** Of people, by id. */
  readonly names: ReadonlyMap<string, string>;
  readonly approvals: readonly Approval[];
}

const Connectors = ({ data }: { readonly data: Shown }) => {
  const { project, listing, names, approvals } = data;
  return (
    <>
      <h2>Connectors</h2>
      <p className="quiet">
        Agents use the tools of these servers, and never see their credentials. The default branch's
        platform.toml names the servers and the rules.
      </p>
      <WaitingCalls pid={project.id} approvals={approvals} />
      {listing.errors.map(({ path, message, line }) => (
        <Callout key={`${String(line)} ${String(path)} ${message}`} tone="bad">
          {line !== null && `Line ${line}: `}
          {path !== null && (
            <>
              <code>{path}</code>
              {": "}
            </>
          )}
          <Prose text={message} />
        </Callout>
      ))}
      {listing.connectors.length === 0 ? (
        <>
          <Empty title="No connectors yet.">
            Add the server to platform.toml on the default branch, for example:
          </Empty>
          <CopyBlock text={LINES} what="the lines" />
        </>
      ) : (
        <ul className="rows">
          {listing.connectors.map((one) => (
            <ConnectorRow key={one.slug} pid={project.id} connector={one} names={names} />
          ))}
        </ul>
      )}
      <Calls pid={project.id} />
    </>
  );
};

const connectors = framedPage<Shown>({
  load: async ([pid = ""]) => {
    const params = { pid };
    const [project, listing, { members }, open] = await Promise.all([
      request("GET /v1/projects/:pid", { params }),
      request("GET /v1/projects/:pid/connectors", { params }),
      request("GET /v1/projects/:pid/members", { params }),
      // A viewer does not decide.
      orNull(
        request("GET /v1/projects/:pid/approvals", { params, query: { status: "pending", limit: 200 } }),
        [403],
      ),
      queries.infiniteQuery(callsQuery(pid)),
    ]);
    return {
      project,
      listing,
      names: new Map(members.map(({ user }) => [user.id, user.name])),
      approvals: open?.approvals ?? [],
    };
  },
  title: ({ project }) => `Connectors of ${project.name}`,
  head: headOf("/settings"),
  Body: Connectors,
});

export const pages = { connectors, connector };
