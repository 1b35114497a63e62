/** What a project's sandboxes run on, and the builds of its Dockerfile. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { request } from "../api/client.ts";
import { pagedQuery } from "../api/lists.ts";
import { queries } from "../api/queries.ts";
import { counted, elapsed, moment, shortId } from "../elements/format.ts";
import { headOf } from "../projects/head.tsx";
import { RoleAct } from "../ui/act.tsx";
import { framedPage } from "../ui/framed-page.tsx";
import { Badge, CopyBlock, IdEnd, More, Prose, Time } from "../ui/parts.tsx";
import { begin, type Build, buildLink, causeWords, isOver, tookOf } from "./build.ts";
import { Following, newest } from "./log.ts";
import { environmentBuild } from "./one.tsx";
import { BuildActs, BuildFailure, BuildState, Unread } from "./parts.tsx";
import { type About, type Environment, Source } from "./source.tsx";

const buildsQuery = (pid: string) =>
  pagedQuery(["builds", pid], (query) =>
    request("GET /v1/projects/:pid/environment/builds", { params: { pid }, query }),
  );

const SETUP = `[environment]
setup = "npm ci"`;

const Setup = ({ project: { default_branch: branch }, found: { setup, devcontainer } }: About) =>
  setup === null ? (
    <>
      <p>None. A command can install the project's packages before the agent begins.</p>
      <p>
        To add one, write it into <code>platform.toml</code>, and merge it into <code>{branch}</code>:
      </p>
      <CopyBlock text={SETUP} what="the setup command" />
    </>
  ) : (
    <>
      <pre className="text" tabIndex={0} aria-label="Setup command">
        {setup.trim()}
      </pre>
      <p className="quiet">
        {devcontainer !== null && devcontainer.commands.length > 0 && (
          <>
            From <code>{devcontainer.path}</code>.{" "}
          </>
        )}
        It runs in each new sandbox when the repository is cloned. A session uses the command of its own
        commit.
      </p>
    </>
  );

/** Sandboxes that wait for a session. */
const Waiting = ({ waiting }: Pick<Environment, "waiting">) => {
  const { wanted, ready, for_triggers: forTriggers, possible } = waiting;
  if (!possible)
    return (
      <p className="quiet">
        No sandbox waits on this node (<code>PLATFORM_WARM_MEMORY_MB</code>). Each session starts its own.
      </p>
    );
  if (forTriggers > 0) return <p>A sandbox is ready for a cron trigger that fires soon.</p>;
  if (wanted === 0)
    return (
      <p className="quiet">
        A sandbox starts when a person begins to write a prompt. To keep one ready at all times, write{" "}
        <code>warm = 1</code> below <code>[environment]</code> in platform.toml.
      </p>
    );
  return <p>{`Ready for the next sessions: ${ready} of ${counted(wanted, "sandbox", "sandboxes")}.`}</p>;
};

/** The consequence for sessions if the image is missing. */
const meanwhile = (build: Build, hasImage: boolean): string => {
  if (isOver(build))
    return hasImage
      ? "Sessions start on the last image."
      : "Sessions cannot start, because there is no earlier image.";
  return hasImage
    ? "Until it is ready, sessions start on the last image."
    : "Sessions wait until it is ready.";
};

interface Followed {
  readonly following: Following | null;
}

const Newest = ({ project, found: { current, image_of: image }, following }: About & Followed) => {
  if (current === null)
    return (
      <>
        <p>It is not built on this node yet. The first session that needs it starts the build.</p>
        <p className="actions">
          <RoleAct entry="build-environment" label="Build now" className="" does={() => begin(project.id)} />
        </p>
      </>
    );
  const build = newest(current, following);
  return (
    <>
      <BuildState build={build} />
      <Unread following={following} />
      <BuildFailure build={build} />
      {build.status !== "ready" && <p className="quiet">{meanwhile(build, image !== null)}</p>}
      <BuildActs build={build} leads />
    </>
  );
};

const BuildRow = ({ build }: { readonly build: Build }) => {
  const { id, status, created_at: created, begun_at: begun, failure, commit, node_id: node } = build;
  return (
    <li className="row">
      <span className="row-main">
        <a
          className="cover"
          href={buildLink(build.project_id, id)}
          aria-label={`Build ${shortId(id)}, ${status}, ${moment(created)}`}
        >
          {`Build ${shortId(id)}`}
        </a>
        {failure !== null && (
          <span className={status === "failed" ? "reason" : "quiet"}>
            <Prose text={failure.message} />
          </span>
        )}
        <span className="quiet parts">
          <span>{causeWords(build)}</span>
          <span>
            commit <code>{commit.slice(0, 10)}</code>
          </span>
          <span>
            node <IdEnd id={node} />
          </span>
        </span>
      </span>
      <Badge status={status} />
      <span className="row-side">
        <Time at={created} />
        {begun !== null && <span className="quiet">{elapsed(tookOf(build))}</span>}
      </span>
    </li>
  );
};

const Builds = ({
  pid,
  isBuilt,
  following,
}: Followed & { readonly pid: string; readonly isBuilt: boolean }) => {
  const list = useInfiniteQuery(buildsQuery(pid));
  const builds = list.data?.pages.flatMap((page) => page.builds) ?? [];
  if (builds.length === 0 && !isBuilt) return null;
  return (
    <section>
      <h2>Builds</h2>
      {builds.length === 0 ? (
        <p className="quiet">No builds yet.</p>
      ) : (
        <ul className="rows">
          {builds.map((build) => (
            <BuildRow key={build.id} build={newest(build, following)} />
          ))}
        </ul>
      )}
      <More list={list}>Show older builds</More>
    </section>
  );
};

const EnvironmentPage = ({ data, following }: Followed & { readonly data: About }) => {
  const { found, project } = data;
  const { current } = found;
  useEffect(() => {
    if (current !== null && !isOver(current)) following?.see(current);
  }, [following, current]);
  const isBuilt = found.dockerfile !== null && found.builder !== null;
  return (
    <>
      <section>
        <h2>Sandboxes run on</h2>
        <Source {...data} />
      </section>
      <section>
        <h2>Setup command</h2>
        <Setup {...data} />
      </section>
      <section>
        <h2>Ready before a session</h2>
        <Waiting waiting={found.waiting} />
      </section>
      {isBuilt && (
        <section>
          <h2>Newest build</h2>
          <Newest {...data} following={following} />
        </section>
      )}
      <Builds pid={project.id} isBuilt={isBuilt} following={following} />
    </>
  );
};

const environment = framedPage<About, Following>({
  load: async ([pid = ""]) => {
    const params = { pid };
    const [project, found] = await Promise.all([
      request("GET /v1/projects/:pid", { params }),
      request("GET /v1/projects/:pid/environment", { params }),
      queries.infiniteQuery(buildsQuery(pid)),
    ]);
    return { project, found };
  },
  follow: (_params, { redraw }) => new Following(redraw, null),
  title: ({ project }) => `Environment of ${project.name}`,
  head: headOf("/environment"),
  Body: EnvironmentPage,
});

export const pages = { environment, environmentBuild };
