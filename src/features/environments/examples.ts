/** Examples of the operations on environments (operations.ts). */
import type { Examples } from "../../http/api/examples/example.ts";
import { USER } from "../../http/api/examples/records.ts";

const source = {
  context: ".devcontainer",
  args: { NODE_VERSION: "24" },
  secrets: ["NPM_TOKEN"],
  devcontainer: ".devcontainer/devcontainer.json",
  key: "5d1f7c0a9e3b64827f60c8d1b2a39e4f5c6d7081a2b3c4d5e6f708192a3b4c5d",
};

const BASE_DIGEST = "sha256:3b9c1e7f5a2d4c6b8e0f1a3c5d7e9b2f4a6c8d0e2b4f6a8c0d2e4f6b8a0c2e4d";

export const ENVIRONMENT_EXAMPLES: Examples = {
  nouns: {
    environmentbuild: {
      ...source,
      status: "ready",
      cause: "asked",
      requested_by: USER,
      dockerfile: ".devcontainer/Dockerfile",
      step: { step: 3, line: 4, instruction: "RUN npm install --global pnpm" },
      image: {
        digest: "sha256:0f4d2e8c6a1b3957d8e0c2f4a6b8d0e1f3a5c7e9b1d3f5a7c9e1b3d5f7a9c1e3",
        bytes: 412_876_800,
        files: 18_204,
      },
    },
  },
  operations: {
    "environments.warm": {
      summary: "Start a sandbox ahead, because a session of the project is about to be started.",
      response: { possible: true },
    },
    "environments.get": {
      summary: "Show what the sandboxes of a project boot on, and the newest build of its Dockerfile.",
      response: {
        kind: "devcontainer",
        setup: "echo '# postCreateCommand'\nsh -c 'npm ci'\n",
        dockerfile: { path: ".devcontainer/Dockerfile", ...source },
        devcontainer: {
          path: ".devcontainer/devcontainer.json",
          used: true,
          variables: { NODE_ENV: "development" },
          commands: ["postCreateCommand"],
          ignored: ["remoteUser"],
        },
        builder: "buildah",
        current: {},
        image_of: {},
        bases: [
          {
            reference: "images.example.com/team/debian:13",
            built_digest: BASE_DIGEST,
            digest: BASE_DIGEST,
            looked_up_at: "2026-11-20T12:00:00.000Z",
            due_at: "2026-11-20T18:00:00.000Z",
          },
        ],
        waiting: { for_triggers: 0, possible: true },
      },
    },
    "environments.builds": "List the builds of a project's environment on all nodes, newest first.",
    "environments.build": {
      summary: "Build the Dockerfile of the default branch again, or show the build of it that is under way.",
      response: { status: "queued", tries: 0, step: null, image: null, begun_at: null, ended_at: null },
    },
    "environments.getBuild": {
      summary: "Show a build of a project's environment.",
      response: {
        status: "failed",
        image: null,
        failure: {
          code: "step_failed",
          step: 3,
          line: 4,
          exit: 127,
          tail: "/bin/sh: npm: not found\n",
          message: "The build failed: step 3 on line 4 failed with exit code 127.",
        },
      },
    },
    "environments.log": {
      summary: "Read the log of a build in pieces, even while it grows.",
      response: { pieces: [{ number: 1, text: "[step 1, line 1] FROM node:24-slim\n" }] },
    },
    "environments.cancel": {
      summary: "Cancel a build. A build that is over stays as it is.",
      response: {
        status: "cancelled",
        image: null,
        failure: { code: "cancelled", message: "The build was cancelled." },
      },
    },
  },
};
