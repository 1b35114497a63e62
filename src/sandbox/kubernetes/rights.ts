/** The rights of the service in the namespace of its sandboxes. deploy/kubernetes/base/sandboxes.yaml has the Role that grants it. */

export interface Right {
  /** Empty: the core group. */
  readonly group: string;
  /** With a subresource after a slash, as in a Role. */
  readonly resource: string;
  readonly verb: string;
}

const rights = (group: string, resource: string, verbs: readonly string[]): Right[] =>
  verbs.map((verb) => ({ group, resource, verb }));

export const RIGHTS: readonly Right[] = [
  ...rights("", "pods", ["create", "delete", "get", "list", "patch", "watch"]),
  ...rights("", "pods/log", ["get"]),
  ...rights("", "secrets", ["create", "delete"]),
  // Only `doctor` reads them.
  ...rights("networking.k8s.io", "networkpolicies", ["list"]),
];
