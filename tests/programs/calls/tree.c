// A balanced tree: recursion on the way down, rotations on the way up, visitors.
#include <stdio.h>
#include <stdlib.h>

struct node {
  int key, height;
  struct node *left, *right;
};

static int height(const struct node* n) { return n ? n->height : 0; }

static void measure(struct node* n) {
  int left = height(n->left), right = height(n->right);
  n->height = 1 + (left > right ? left : right);
}

static struct node* rotate_right(struct node* n) {
  struct node* top = n->left;
  n->left = top->right;
  top->right = n;
  measure(n);
  measure(top);
  return top;
}

static struct node* rotate_left(struct node* n) {
  struct node* top = n->right;
  n->right = top->left;
  top->left = n;
  measure(n);
  measure(top);
  return top;
}

static struct node* balance(struct node* n) {
  measure(n);
  int lean = height(n->left) - height(n->right);
  if (lean > 1) {
    if (height(n->left->left) < height(n->left->right)) n->left = rotate_left(n->left);
    return rotate_right(n);
  }
  if (lean < -1) {
    if (height(n->right->right) < height(n->right->left)) n->right = rotate_right(n->right);
    return rotate_left(n);
  }
  return n;
}

static struct node* insert(struct node* n, int key) {
  if (!n) {
    n = calloc(1, sizeof *n);
    n->key = key;
  } else if (key < n->key) {
    n->left = insert(n->left, key);
  } else if (key > n->key) {
    n->right = insert(n->right, key);
  }
  return balance(n);
}

static void visit(struct node* n, void (*each)(struct node*, void*), void* with) {
  if (!n) return;
  visit(n->left, each, with);
  struct node* right = n->right;
  each(n, with);
  visit(right, each, with);
}

static void check_order(struct node* n, void* last) {
  if (n->key != *(int*)last + 1) exit(1);
  *(int*)last = n->key;
}

// Of a node that is visited nothing is needed any more.
static void release(struct node* n, void* count) {
  ++*(int*)count;
  free(n);
}

int main(void) {
  struct node* root = 0;
  for (int i = 0; i < 60; i++) root = insert(root, i * 37 % 60);
  int last = -1, count = 0, tall = root->height;
  visit(root, check_order, &last);
  visit(root, release, &count);
  printf("%d nodes, %d levels\n", count, tall);
  return count != 60 || tall > 8;
}
