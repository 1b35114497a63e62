/** One build of a project's environment, with its log. */
import { useEffect, useLayoutEffect, useRef } from "react";
import { request } from "../api/client.ts";
import type { Project } from "../api/projects.ts";
import { grouped, moment, shortId, size } from "../elements/format.ts";
import { projectLink } from "../elements/parts.ts";
import { framedPage } from "../ui/framed-page.tsx";
import { Facts, Trail } from "../ui/parts.tsx";
import { type Build, causeWords } from "./build.ts";
import { Following, type Log, makeLog, newest } from "./log.ts";
import { BuildActs, BuildFailure, BuildState, sourceRows, Unread } from "./parts.tsx";

interface Shown {
  readonly project: Project;
  readonly build: Build;
}

const BuildFacts = ({ build }: { readonly build: Build }) => {
  const {
    dockerfile,
    node_id: node,
    tries,
    created_at: created,
    begun_at: begun,
    ended_at: ended,
    image,
  } = build;
  return (
    <Facts
      rows={[
        ...sourceRows(dockerfile, build),
        ["Reason", causeWords(build)],
        ["Node", <code key="node">{node}</code>],
        ["Tries", tries > 1 && String(tries)],
        ["Requested", moment(created)],
        ["Began", begun !== null && moment(begun)],
        ["Ended", ended !== null && moment(ended)],
        [
          "Image",
          image !== null && (
            <span>
              <code>{image.digest}</code>
              {`, ${size(image.bytes)}, ${grouped(image.files)} ${image.files === 1 ? "file" : "files"}`}
            </span>
          ),
        ],
      ]}
    />
  );
};

/** The log draws itself. */
const LogPlace = ({ log }: { readonly log: Log | null }) => {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (log !== null) place.current?.replaceChildren(log.element);
  }, [log]);
  return <div ref={place} />;
};

const BuildPage = ({ data, following }: { readonly data: Shown; readonly following: Following | null }) => {
  const build = newest(data.build, following);
  useEffect(() => following?.see(data.build), [following, data.build]);
  return (
    <>
      <header className="head">
        <h1>{`Build ${shortId(build.id)}`}</h1>
        <BuildState build={build} />
        <BuildActs build={build} />
      </header>
      <BuildFailure build={build} hasLog />
      <section>
        <h2>Log</h2>
        <Unread following={following} />
        <LogPlace log={following?.log ?? null} />
      </section>
      <section>
        <h2>Details</h2>
        <BuildFacts build={build} />
      </section>
    </>
  );
};

export const environmentBuild = framedPage<Shown, Following>({
  load: async ([pid = "", bid = ""]) => {
    const [project, build] = await Promise.all([
      request("GET /v1/projects/:pid", { params: { pid } }),
      request("GET /v1/projects/:pid/environment/builds/:bid", { params: { pid, bid } }),
    ]);
    return { project, build };
  },
  follow: (_params, { redraw }) => new Following(redraw, makeLog()),
  title: ({ build }, following) => `Build ${shortId(build.id)} · ${newest(build, following).status}`,
  head: ({ project, build }) => (
    <Trail
      steps={[
        ["Projects", "#/projects"],
        [project.name, projectLink(project.id)],
        ["Environment", projectLink(project.id, "/environment")],
        [`Build ${shortId(build.id)}`, null],
      ]}
    />
  ),
  Body: BuildPage,
});
