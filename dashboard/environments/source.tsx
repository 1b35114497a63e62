/** What a project's sandboxes run on: where it comes from, and how to change it. */
import type { ReactNode } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import type { Project } from "../api/projects.ts";
import { size } from "../elements/format.ts";
import { Callout, CopyBlock, Facts, Prose, Time } from "../ui/parts.tsx";
import { assignments, BuildLink, type Rows, sourceRows } from "./parts.tsx";

export type Environment = Answer<"GET /v1/projects/:pid/environment">;
type Base = Environment["bases"][number];

export interface About {
  readonly project: Project;
  readonly found: Environment;
}

const DOCKERFILE = `FROM docker.io/library/debian:13-slim
RUN apt-get update && apt-get install --yes --no-install-recommends python3`;

const useOf = (path: string): string => `[environment]
devcontainer = "${path}"`;

const MachineFiles = () => (
  <p>The machine's own files. Agents find the programs that are installed on the machine.</p>
);

/** On a node that builds nothing, whatever the repository says. */
const Unbuilt = ({ found: { dockerfile, devcontainer } }: About) => {
  const path = devcontainer?.path ?? dockerfile?.path ?? null;
  return (
    <>
      <MachineFiles />
      {path === null ? (
        <p>
          This node builds no images (<code>PLATFORM_BUILDER=none</code>). A Dockerfile has no effect.
        </p>
      ) : (
        <Callout tone="warn">
          The image of <code>{path}</code> is not built, because this node builds no images (
          <code>PLATFORM_BUILDER=none</code>). Ask your operator to choose a builder.
        </Callout>
      )}
    </>
  );
};

/** A file that could be used, or why it could not. */
const Unused = ({ project: { default_branch: branch }, found: { devcontainer } }: About) =>
  devcontainer !== null && (
    <>
      <h3>Use devcontainer.json</h3>
      {devcontainer.problem === null ? (
        <>
          <p>
            <code>{devcontainer.path}</code> is not used. To use it, merge these lines of{" "}
            <code>platform.toml</code> into <code>{branch}</code>:
          </p>
          <CopyBlock text={useOf(devcontainer.path)} what="the lines for platform.toml" />
        </>
      ) : (
        <p>
          The repository's file cannot be used: <Prose text={devcontainer.problem} />
        </p>
      )}
    </>
  );

const Machine = (about: About) => (
  <>
    <MachineFiles />
    <Unused {...about} />
    <h3>Add a Dockerfile</h3>
    <p>
      To choose the programs yourself, add these two lines as <code>.platform/Dockerfile</code>, and merge
      them into <code>{about.project.default_branch}</code>:
    </p>
    <CopyBlock text={DOCKERFILE} what="the Dockerfile" />
    <p className="quiet">
      A build reaches only the hosts that your operator allows in <code>PLATFORM_EGRESS_ALLOW</code>. Before
      you merge, ask for the hosts of the image's registry (first line), and of the distribution's package
      server (<code>apt-get</code>). A build that is refused says which host it needs.
    </p>
  </>
);

const OperatorsImage = ({ found: { image } }: About) => (
  <>
    <p>
      The image <code>{image ?? ""}</code>, which <code>platform.toml</code> names.
    </p>
    <p className="quiet">An operator makes it on the machine. The service does not build it.</p>
  </>
);

/** Whether the tag stands for another image than at the build. */
const hasChanged = ({ digest, built_digest: former }: Base): boolean =>
  digest !== null && former !== null && digest !== former;

/** `sha256:` and twelve digits: enough to compare with what other tools show. */
const DIGEST_SHOWN = 19;

/** A base image, its digest, and when the registry was asked. */
const BaseImage = ({ base }: { readonly base: Base }) => (
  <li>
    <code>{base.reference}</code>
    {base.digest !== null && " "}
    {base.digest !== null && <code>{base.digest.slice(0, DIGEST_SHOWN)}</code>}
    {", looked up "}
    <Time at={base.looked_up_at} />
    {hasChanged(base) && ", changed since the build"}
    {base.problem !== null && `. The last look failed: ${base.problem}`}
  </li>
);

/** What a new sandbox would boot on. */
const Image = ({ project, found: { image_of: image, bases, dockerfile } }: About) => {
  if (image === null) return <>none yet</>;
  return (
    <span>
      <BuildLink pid={project.id} id={image.id} />
      {image.image !== null && `, ${size(image.image.bytes)}`}
      {image.key !== dockerfile?.key
        ? ", stale: built from an earlier commit"
        : bases.some(hasChanged) && ", stale: a base image has changed since"}
    </span>
  );
};

const saidRows = ({ variables, ignored }: NonNullable<Environment["devcontainer"]>): Rows => {
  const given = assignments(variables);
  return [
    ["Variables", given.length > 0 && <code>{given.join(" ")}</code>],
    ["Ignored", ignored.length > 0 && <code>{ignored.join(" ")}</code>],
  ];
};

const Built = (about: About) => {
  const { dockerfile, devcontainer, builder, bases } = about.found;
  return (
    <Facts
      rows={[
        ...(dockerfile === null ? [] : sourceRows(dockerfile.path, dockerfile)),
        ...(devcontainer === null ? [] : saidRows(devcontainer)),
        ["Builder", builder],
        ["Image", <Image key="image" {...about} />],
        [
          "Base images",
          bases.length > 0 && (
            <ul className="plain">
              {bases.map((base) => (
                <BaseImage key={base.reference} base={base} />
              ))}
            </ul>
          ),
        ],
      ]}
    />
  );
};

const SOURCES: Readonly<Record<Environment["kind"], (about: About) => ReactNode>> = {
  machine: Machine,
  image: OperatorsImage,
  dockerfile: Built,
  devcontainer: Built,
};

export const Source = (about: About) => {
  const { builder, kind } = about.found;
  const Shown = builder === null && kind !== "image" ? Unbuilt : SOURCES[kind];
  return <Shown {...about} />;
};
