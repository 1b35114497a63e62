/** The answer of a check of a repository (api.md 2). */

/** Whether the service could work with a repository. A step that failed is the last one that was tried. */
export interface RepositoryCheck {
  usable: boolean;
  default_branch: string | null;
  steps: {
    step: string;
    outcome: "passed" | "failed" | "unknown";
    message: string;
    advice: string | null;
  }[];
}
