/** Examples of the checks of a repository. */

const check = {
  usable: false,
  default_branch: null,
  steps: [
    { step: "host", outcome: "passed", message: "The API at api.github.com answers.", advice: null },
    { step: "credential", outcome: "passed", message: "The code host accepts the token.", advice: null },
    {
      step: "repository",
      outcome: "failed",
      message: "The code host shows no repository acme/shop to this credential.",
      advice: "Check owner and name. A fine-grained token must list this repository.",
    },
  ],
};

export const REPOSITORY_CHECK_EXAMPLES = {
  "projects.checkRepository": {
    summary: "Check, step by step, whether the service could work with a repository. Nothing changes.",
    request: {
      repository: {
        kind: "github",
        owner: "acme",
        name: "shop",
        token: "github_pat_11AAB",
        pull_requests: true,
      },
    },
    response: check,
  },
  "projects.checkConnection": {
    summary: "Check the connection to a project's repository with its stored credential, and its webhook.",
    response: check,
  },
} as const;
