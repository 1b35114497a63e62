/** The setup of a project: the check of its repository, and its missing parts (api.md 2). */

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

/** What a project still needs before its first session. */
export interface SessionOptions {
  default_branch: string;
  branches: string[];
  agents: string[];
  default_model: string | null;
  models: string[];
}

export interface ProjectSetup {
  repository: { url: string; branch: string; commit: string | null; empty: boolean };
  model: { required: boolean; model: string | null; source: "gateway" | "secret" | "repository" | null };
  providers: { id: string; secrets: string[]; model: string; configured: boolean }[];
}
