/** The authors of commits: the platform itself, and people. */

/** No mail reaches these addresses. */
export const COMMIT_DOMAIN = "platform.invalid";

/** A person as git's author. Git drops these characters, and refuses a name that has no others. */
export const commitAuthor = ({ id, name }: { readonly id: string; readonly name: string }) => {
  const plain = name.replaceAll(/[\p{Cc}<>]/gu, " ").trim();
  return { name: /[^\s.,:;"'\\]/u.test(plain) ? plain : id, email: `${id}@${COMMIT_DOMAIN}` };
};
