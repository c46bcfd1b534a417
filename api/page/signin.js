// Signing in where the service asks for it: by a token that the person pastes, kept in this tab alone.

import { Problem, signIn } from "./server.js";
import { askText } from "./dialogs.js";
import { words } from "./words.js";

let asking = null;
let isDeclined = false; // who closed the question is not asked again until they wish to sign in

// -> whether there is a token now. Asked once, however many calls were refused.
export function askSignIn() {
  isDeclined = false;
  asking ||= askOnce().finally(() => {
    asking = null;
  });
  return asking;
}

async function askOnce() {
  const token = await askText({
    title: words.signInTitle, detail: words.signInDetail, label: words.token, ok: words.signIn,
    type: "password", limit: 16384,
  });
  if (token) signIn.keep(token.replace(/^Bearer\s+/i, ""));
  isDeclined = !token;
  document.dispatchEvent(new Event("signin"));
  return Boolean(token);
}

// The call, and after a refusal for want of a token once more for each token given.
export async function withSignIn(call) {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const isRefused = error instanceof Problem && error.status === 401;
      if (!isRefused || isDeclined || !(await askSignIn())) throw error;
    }
  }
}
